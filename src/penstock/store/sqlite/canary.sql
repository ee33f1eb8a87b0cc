-- name: canary_pages
-- How many pages each of its runs has come to an end with. What a run has left to the canary, or needed not look at, is skipped.
SELECT c.run_id, c.arm, sum(g.succeeded + g.quarantined)
FROM canary_run AS c JOIN run_stage AS g ON g.run_id = c.run_id
WHERE c.canary_id = :canary_id AND g.unit = 'page'
GROUP BY c.run_id, c.arm;
