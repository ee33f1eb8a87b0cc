-- name: canary_pages
-- How many pages each of its runs has come to an end with. What a run has left to the canary, or needed not look at, is skipped.
-- Counters are added up from what was moved (stage_count).
SELECT c.run_id, c.arm, sum(g.succeeded + g.quarantined)
FROM penstock.canary_run AS c JOIN penstock.stage_count AS g ON g.run_id = c.run_id
WHERE c.canary_id = %(canary_id)s AND g.unit = 'page'
GROUP BY c.run_id, c.arm;

-- name: canary_page_jobs
-- The keys of a run are in an index of their own; jobs have none by run but of those that are open.
SELECT j.id, j.stage, j.key, j.state
FROM (SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s OFFSET 0) AS k
CROSS JOIN LATERAL (SELECT id, stage, key, state, unit FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
WHERE j.unit = 'page' AND j.state IN ('succeeded', 'quarantined');

-- name: canary_candidates
-- Jobs below pages, each with the job that it came from.
SELECT j.id, j.state, i.parent_id
FROM (SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s OFFSET 0) AS k
CROSS JOIN LATERAL (SELECT id, state, unit FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
CROSS JOIN LATERAL (SELECT parent_id FROM penstock.job_item WHERE job_id = k.job_id OFFSET 0) AS i
WHERE j.unit = 'candidate';
