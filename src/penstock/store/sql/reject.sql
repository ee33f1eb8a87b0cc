-- name: reject_item
SELECT item FROM penstock.reject WHERE id = :id;
