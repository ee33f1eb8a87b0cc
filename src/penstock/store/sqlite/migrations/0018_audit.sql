-- expands

-- Seals of the journal.
