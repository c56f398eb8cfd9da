"""How far learning from features scales: rows, memory, accuracy, and other libraries."""
