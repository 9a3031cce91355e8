select max(m.number) from pgq.migrations as m
