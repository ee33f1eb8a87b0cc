-- name: journal_since
SELECT at FROM penstock.event WHERE id > :floor ORDER BY id LIMIT 1;
