-- expands

-- Whose database this is: written by the first project that opens it, and compared by every later one.
CREATE TABLE project (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  name TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
