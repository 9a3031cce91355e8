select j.status, j.result, j.last_error
from pgq.jobs as j
where j.id = %(id)s::bigint and j.shard = 0
