-- expands

-- What programs and people from other machines show to get in. Of a token's text only the hash is here; `prefix` is its
-- beginning, which says which one it is and opens nothing. `used_at` is noted now and then, not at each use.
CREATE TABLE token (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  prefix TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  expires_at REAL,
  used_at REAL,
  revoked_at REAL
) STRICT;

CREATE UNIQUE INDEX token_prefix ON token (prefix);
CREATE UNIQUE INDEX token_name ON token (name) WHERE revoked_at IS NULL;

-- Answers to requests that had an Idempotency-Key. Without an answer, a server performs the act until its lease ends.
CREATE TABLE idempotency_key (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  server TEXT NOT NULL,
  at REAL NOT NULL,
  lease_expires_at REAL NOT NULL,
  answer TEXT,
  UNIQUE (identity, key)
) STRICT;

CREATE INDEX idempotency_key_at ON idempotency_key (at);
