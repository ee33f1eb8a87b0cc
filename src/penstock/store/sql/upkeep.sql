-- name: ownerless_jobs
SELECT id FROM penstock.job WHERE state = 'running' AND worker NOT IN (SELECT id FROM penstock.worker);

-- name: jobs_without_item
SELECT j.id FROM penstock.job AS j LEFT JOIN penstock.job_item AS i ON i.job_id = j.id WHERE i.job_id IS NULL;

-- name: snapshots_without_payload
SELECT s.id FROM penstock.snapshot AS s LEFT JOIN penstock.payload AS p ON p.hash = s.hash WHERE p.hash IS NULL;
