-- expands

-- The states of sources that were proposed, retired or put on legal hold. A source without a row is active, unless the project
-- requires onboarding. `keys` is what its section of penstock.yaml will say, as JSON, of a proposal that is not in the file yet.
-- `robots_at` and `terms_at` are those of the last check that could be made.
CREATE TABLE onboarding (
  source_id INTEGER PRIMARY KEY REFERENCES source (id),
  state TEXT NOT NULL CHECK (state IN ('proposed', 'trial', 'active', 'retired')),
  changed_at REAL NOT NULL,
  changed_by TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  keys TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '',
  proposed_at REAL,
  proposed_by TEXT NOT NULL DEFAULT '',
  proposed_why TEXT NOT NULL DEFAULT '',
  approved_at REAL,
  approved_by TEXT NOT NULL DEFAULT '',
  activated_at REAL,
  activated_by TEXT NOT NULL DEFAULT '',
  robots_verdict TEXT NOT NULL DEFAULT '' CHECK (robots_verdict IN ('', 'allowed', 'disallowed')),
  robots_at REAL,
  terms_verdict TEXT NOT NULL DEFAULT '' CHECK (terms_verdict IN ('', 'accepted', 'changed')),
  terms_at REAL,
  terms_url TEXT NOT NULL DEFAULT '',
  terms_hash TEXT NOT NULL DEFAULT '',
  legal_hold_at REAL,
  legal_hold_by TEXT NOT NULL DEFAULT '',
  legal_hold_reason TEXT NOT NULL DEFAULT '',
  CHECK (state <> 'proposed' OR proposed_at IS NOT NULL),
  CHECK (state <> 'trial' OR approved_at IS NOT NULL),
  CHECK (state <> 'active' OR proposed_at IS NULL OR activated_at IS NOT NULL),
  CHECK ((robots_verdict = '') = (robots_at IS NULL)),
  CHECK ((terms_verdict = '') = (terms_at IS NULL)),
  CHECK ((legal_hold_at IS NULL) = (legal_hold_by = ''))
) STRICT;

-- Every check of robots.txt and terms that was made, with what was read.
CREATE TABLE compliance_check (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source_id INTEGER NOT NULL REFERENCES source (id),
  subject TEXT NOT NULL CHECK (subject IN ('robots', 'terms')),
  verdict TEXT NOT NULL CHECK (
    verdict IN ('allowed', 'disallowed', 'not_needed', 'unreachable', 'accepted', 'unchanged', 'changed', 'seen')),
  at REAL NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  url TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL DEFAULT '',
  detail TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX compliance_check_source ON compliance_check (source_id, id);

-- The texts that checks have read, by their hash.
CREATE TABLE compliance_text (
  hash TEXT PRIMARY KEY,
  content TEXT NOT NULL
) STRICT;
