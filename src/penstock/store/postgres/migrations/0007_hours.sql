-- expands
-- locks: nothing

-- Jobs that were put off until the hours of a host begin: until when, by what they were told. Of no use after that.
CREATE TABLE penstock.host_wait (
  job_id bigint PRIMARY KEY,
  host text COLLATE "C" NOT NULL,
  due_at double precision NOT NULL
);

CREATE INDEX host_wait_due ON penstock.host_wait (due_at);

-- The hours of hosts, as whoever led last has them.
CREATE TABLE penstock.host_hours (
  host text COLLATE "C" PRIMARY KEY,
  definition text NOT NULL
);
