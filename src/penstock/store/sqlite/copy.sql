-- name: unfinished_copy
SELECT origin FROM copy;
