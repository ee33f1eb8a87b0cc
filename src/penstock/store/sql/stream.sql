-- name: stream_alive_at
SELECT max(c.at) FROM penstock.run AS r JOIN penstock.run_cursor AS c ON c.run_id = r.id AND c.partition = '~alive'
WHERE r.source_id = :source_id AND r.kind = 'stream';
