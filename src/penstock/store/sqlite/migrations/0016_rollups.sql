-- expands

-- Counters by source and hour, folded from the journal.
