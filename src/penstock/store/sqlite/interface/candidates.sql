SELECT f.source_id, f.site_url FROM sql_source AS f JOIN source AS s ON s.id = f.source_id
    WHERE (new.source IS NULL OR s.key = new.source) AND (new.job_type IS NULL OR f.job_type = new.job_type)
      AND (new.organization_id IS NULL OR f.organization_id = new.organization_id)
      AND (new.site_url IS NULL OR f.domain = (
        SELECT CASE WHEN h LIKE 'www.%.%' THEN substr(h, 5) ELSE h END FROM (
          SELECT rtrim(CASE WHEN h LIKE '%:80' THEN substr(h, 1, length(h) - 3)
              WHEN h LIKE '%:443' THEN substr(h, 1, length(h) - 4) ELSE h END, '.') AS h FROM (
            SELECT substr(h, instr(h, '@') + 1) AS h FROM (
              SELECT substr(h, 1, instr(h || '#', '#') - 1) AS h FROM (
                SELECT substr(h, 1, instr(h || '?', '?') - 1) AS h FROM (
                  SELECT substr(h, 1, instr(h || '/', '/') - 1) AS h FROM (
                    SELECT substr(h, CASE WHEN instr(h, '://') > 0 THEN instr(h, '://') + 3 ELSE 1 END) AS h FROM (
                      SELECT lower(trim(new.site_url)) AS h)))))))))
