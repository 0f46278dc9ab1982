"""An application with Django; see rows.py."""

import django
import rows
from django.conf import settings

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3",
                                          "OPTIONS": {"timeout": 20}}},
                   DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True)
django.setup()

import django_ids  # noqa: E402
from django.db import connection, connections, models  # noqa: E402
from django.db.migrations.writer import MigrationWriter  # noqa: E402
from django.http import JsonResponse  # noqa: E402


class Order(models.Model):
    id = django_ids.SidflakeIdField()
    total = models.IntegerField()

    class Meta:
        app_label = "shop"
        db_table = "orders"


def write(database, go):
    connections.databases["default"]["NAME"] = database
    with connection.schema_editor() as editor:
        editor.create_model(Order)

    def insert():
        Order.objects.bulk_create([Order(total=7)])
        Order.objects.create(total=7)

    migration = MigrationWriter.serialize(Order._meta.get_field("id"))[0]
    assert migration == "django_ids.SidflakeIdField(serialize=False)", migration
    rows.ROWS //= 2
    rows.BEFORE //= 2
    rows.write(insert, connections.close_all, go, django_ids.batches.lock)
    return "[%s]" % ",".join(
        JsonResponse({"id": str(order.id), "total": order.total}).content.decode()
        for order in Order.objects.all())


rows.main(django_ids.next_id, write)
