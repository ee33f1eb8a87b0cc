-- name: canary_pages
-- How many pages each of its runs has come to an end with. What a run has left to the canary, or needed not look at, is skipped.
SELECT c.run_id, c.arm, sum(g.succeeded + g.quarantined)
FROM canary_run AS c JOIN run_stage AS g ON g.run_id = c.run_id
WHERE c.canary_id = :canary_id AND g.unit = 'page'
GROUP BY c.run_id, c.arm;

-- name: canary_page_jobs
SELECT id, stage, key, state FROM job WHERE run_id = :run_id AND unit = 'page' AND state IN ('succeeded', 'quarantined');

-- name: canary_candidates
-- Jobs below pages, each with the job that it came from.
SELECT job.id, job.state, i.parent_id FROM job JOIN job_item AS i ON i.job_id = job.id
WHERE job.run_id = :run_id AND job.unit = 'candidate';
