-- name: drop_holdings
DELETE FROM penstock.holding WHERE worker = :worker RETURNING key, amount;
