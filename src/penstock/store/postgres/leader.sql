-- name: leaders
SELECT coalesce(json_agg(json_build_object(
  'name', name, 'holder', holder, 'term', term, 'expires_at', expires_at
) ORDER BY name), '[]')::text
FROM penstock.leader;
