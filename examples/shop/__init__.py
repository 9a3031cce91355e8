"""A small web shop whose work after an order runs as jobs: `pgq worker --app examples.shop:app`.

It needs the extra `demo`: pip install '.[embedded,demo]' in the clone, or ./demo.sh, which does it.
`orders` is the application's side: it stores orders and enqueues their jobs in one transaction.
`mail`, `invoices`, `photos` and `contacts` are the handlers, a file a kind. They read these
variables:

SHOP_SMTP    host:port of the mail server; without it messages become files in the outbox
SHOP_OUTBOX  the folder for what the shop makes; ./outbox if unset
SHOP_PHOTOS  the folder of the product photos; the ones beside this file if unset
SHOP_DSN     the shop's database, for the contacts of its CRM
"""

from examples.shop import contacts, invoices, mail, photos
from examples.shop.app import app

__all__ = ["app", "contacts", "invoices", "mail", "photos"]
