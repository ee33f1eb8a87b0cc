-- name: renew_term
-- By the term as well as by the holder: one that slept can't lengthen a later term, not even its own.
UPDATE penstock.leader SET expires_at = %(expires_at)s
WHERE name = %(matter)s AND holder = %(holder)s AND term = %(term)s;

-- name: elect_if_vacant
-- Looked at before it is written: while somebody leads, asking costs a read.
INSERT INTO penstock.leader (name, holder, term, expires_at)
SELECT %(matter)s, %(holder)s, 1, %(expires_at)s
WHERE NOT EXISTS (
  SELECT 1 FROM penstock.leader
  WHERE name = %(matter)s AND holder <> %(holder)s AND expires_at > %(now)s
)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, term = leader.term + 1, expires_at = excluded.expires_at
WHERE leader.holder = excluded.holder OR leader.expires_at <= %(now)s
RETURNING term;

-- name: end_term
-- The row stays: the numbers of terms never begin again.
UPDATE penstock.leader SET expires_at = %(now)s
WHERE name = %(matter)s AND holder = %(holder)s AND term = %(term)s AND expires_at > %(now)s;

-- name: leaders
SELECT coalesce(json_agg(json_build_object(
  'name', name, 'holder', holder, 'term', term, 'expires_at', expires_at
) ORDER BY name), '[]')::text
FROM penstock.leader;
