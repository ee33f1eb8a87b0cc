-- expands

-- Alerts, their evidence, and the routes that they take.
