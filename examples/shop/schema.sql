-- The shop's own tables, beside pgq's in the same database.

create schema shop;

create table shop.orders (
    number text primary key,
    placed_at timestamptz not null,
    email text not null,
    name text not null,
    country text not null,
    currency text not null,
    total numeric not null
);

create index orders_email on shop.orders (email);

-- The CRM's view of a customer; written by the job sync_contact.
create table shop.contacts (
    email text primary key,
    name text not null,
    country text not null,
    orders bigint not null,
    last_order_at timestamptz not null
);
