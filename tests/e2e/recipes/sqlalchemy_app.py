"""An application with SQLAlchemy; see rows.py."""

import json

import rows
import sqlalchemy_ids
from sqlalchemy import Column, Integer, create_engine
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Order(sqlalchemy_ids.SidflakeId, Base):
    __tablename__ = "orders"
    total = Column(Integer, nullable=False)


def write(database, go):
    engine = create_engine("sqlite:///" + database, connect_args={"timeout": 20})
    Base.metadata.create_all(engine)

    def insert():
        with Session(engine) as session:
            session.add(Order(total=7))
            session.commit()

    rows.write(insert, engine.dispose, go, sqlalchemy_ids.batches.lock)
    with Session(engine) as session:
        return "[%s]" % ",".join(json.dumps({"id": str(order.id), "total": order.total})
                                 for order in session.query(Order))


rows.main(sqlalchemy_ids.next_id, write)
