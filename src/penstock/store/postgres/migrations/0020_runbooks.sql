-- expands

-- How far somebody has come in a runbook.
