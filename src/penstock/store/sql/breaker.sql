-- name: add_breaker
INSERT INTO penstock.breaker (key, state, since) VALUES (:key, 'closed', :now) ON CONFLICT (key) DO NOTHING;
