-- name: renew_term
-- By the term as well as by the holder: one that slept can't lengthen a later term, not even its own.
UPDATE penstock.leader SET expires_at = :expires_at
WHERE name = :matter AND holder = :holder AND term = :term;

-- name: elect_if_vacant
-- Looked at before it is written: while somebody leads, asking costs a read.
INSERT INTO penstock.leader (name, holder, term, expires_at)
SELECT :matter, :holder, 1, :expires_at
WHERE NOT EXISTS (
  SELECT 1 FROM penstock.leader
  WHERE name = :matter AND holder <> :holder AND expires_at > :now
)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, term = leader.term + 1, expires_at = excluded.expires_at
WHERE leader.holder = excluded.holder OR leader.expires_at <= :now
RETURNING term;

-- name: end_term
-- The row stays: the numbers of terms never begin again.
UPDATE penstock.leader SET expires_at = :now
WHERE name = :matter AND holder = :holder AND term = :term AND expires_at > :now;
