"""Front ends over HTTP: today the trigger, which raises signals.

In:    requests, from whoever the door lets in.
Out:   verbs of the application, called in a thread; their views and refusals as JSON.
Never: policy of its own, SQL, anything below the application.
"""
