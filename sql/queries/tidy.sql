select pgq.tidy()
