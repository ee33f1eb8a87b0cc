-- name: project_name
SELECT name FROM penstock.project;

-- name: name_project_if_unnamed
INSERT INTO penstock.project (id, name, at) VALUES (1, :project, :now) ON CONFLICT DO NOTHING;

-- name: rename_project
INSERT INTO penstock.project (id, name, at) VALUES (1, :project, :now)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, at = excluded.at;
