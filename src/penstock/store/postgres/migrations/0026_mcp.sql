-- expands
-- locks: event, until its new index is built

-- What was done through MCP is what people did, too. The index of the other front ends is still used by hosts of older versions, so
-- this is one of its own.
CREATE INDEX event_of_mcp ON penstock.event (id) WHERE origin = 'mcp';
