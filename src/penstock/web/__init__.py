"""Front ends over HTTP: the API and the dashboard (`penstock web`), and the trigger, which raises signals.

In:    requests, from whoever has a session, a token or a one-time link.
Out:   verbs of the application, called in a thread; their views and refusals as JSON or pages.
Never: policy of its own, SQL, anything below the application.

Routes, roles, the OpenAPI document and the dashboard's buttons are made from the tables in `app/verbs`.
"""
