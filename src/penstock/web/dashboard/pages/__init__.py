"""What each page reads: one module for each, from the application's views to what its template needs."""
