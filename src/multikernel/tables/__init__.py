"""Data files of users: reading, checking and encoding them for estimators.

>>> from multikernel.tables import Frame, TableEncoder
>>> frame = Frame.of({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
>>> encoder = TableEncoder.fit(frame)
>>> encoder.names
['size', 'colour=blue', 'colour=red']
>>> encoder(frame)
array([[1., 0., 1.],
       [2., 1., 0.],
       [3., 0., 1.]])
"""

from .encoding import Column, TableEncoder
from .frame import DataError, Frame
from .model import TableModel
from .reading import read_frame
from .targets import TargetColumn, find_target
from .writing import TableWriter, write_columns

__all__ = [
    "Column",
    "DataError",
    "Frame",
    "TableEncoder",
    "TableModel",
    "TableWriter",
    "TargetColumn",
    "find_target",
    "read_frame",
    "write_columns",
]
