-- The size in bytes that the text of a payload may have; `alter database ... set
-- pgq.max_payload_bytes = ...` changes it.
select coalesce(nullif(current_setting('pgq.max_payload_bytes', true), '')::integer, 1048576)
