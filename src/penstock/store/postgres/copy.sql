-- name: unfinished_copy
SELECT origin FROM penstock.copy;
