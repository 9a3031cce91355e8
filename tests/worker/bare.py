"""An app to which nobody added a handler."""

import pgq

app = pgq.App()
