-- expands
-- locks: nothing

-- Whose schema this is: written by the first project that opens it, and compared by every later one.
CREATE TABLE penstock.project (
  id bigint PRIMARY KEY CHECK (id = 1),
  name text NOT NULL,
  at double precision NOT NULL
);
