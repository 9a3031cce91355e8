"""The App that the shop's handlers register with."""

import pgq

app = pgq.App()
