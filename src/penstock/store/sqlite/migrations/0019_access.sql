-- expands

-- Tokens, sessions and idempotency keys of the web front end.

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
