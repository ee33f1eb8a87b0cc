-- expands

-- Tokens, sessions and idempotency keys of the web front end.
