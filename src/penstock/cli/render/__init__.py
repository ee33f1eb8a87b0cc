"""What people read: tables, progress, times, pages of HTML; and text made harmless."""
