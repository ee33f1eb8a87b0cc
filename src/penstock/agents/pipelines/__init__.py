"""The pipelines of the site agents: `pipeline: penstock.agents.pipelines:mapper`, with `connector: web`.

In:    a source of a site; its schema and records.
Out:   site schemas, notes and proposals in the collection `site_schemas`, and records by trusted schemas.
Never: a page that is fetched around the source's limits, or a record by a schema that is not trusted.
"""

from penstock.agents.pipelines.extraction import extraction
from penstock.agents.pipelines.image_qa import image_qa
from penstock.agents.pipelines.mapper import mapper
from penstock.agents.pipelines.retries import retries
from penstock.agents.pipelines.steward import steward
from penstock.agents.pipelines.validator import validator

__all__ = ["extraction", "image_qa", "mapper", "retries", "steward", "validator"]
