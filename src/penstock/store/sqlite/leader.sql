-- name: leaders
SELECT json_group_array(json_object(
  'name', name, 'holder', holder, 'term', term, 'expires_at', expires_at
))
FROM (SELECT * FROM leader ORDER BY name);
