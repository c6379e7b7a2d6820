"""The console: web pages that show and steer a cluster, served by a process of its own (`ottla console`).

Pages are made on the server from typed elements (`html.py`), so that text from records can never become markup. One
small script (`static/console.js`) renews parts of a page; everything but live parts works without it (ADR 0050).

- `app.py` takes a request through the gate (`security/gate.py`) to the route that declares it (`routing.py`).
- `pages/` has one folder or module per noun: it declares routes and returns answers (`answers.py`).
- `parts/` has what pages are made of: tables, forms, charts.
- `access.py` is the cluster as one signed-in user reaches it: the console has no rights of its own.
"""
