"""The hub of hub/jupyterhub_config.py, for the tests: other ports, and accounts where it may make them."""

import os
from pathlib import Path

from jupyterhub.spawner import SimpleLocalProcessSpawner

c = get_config()
load_subconfig(os.environ["CLASS_HUB_CONFIG"])

port, inner_port, proxy_port = os.environ["CLASS_HUB_PORTS"].split()
c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_port = int(inner_port)
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy_port}"
# The book's repository lies in a folder of another account than the student's.
c.Spawner.environment |= {"GIT_CONFIG_GLOBAL": os.environ["CLASS_HUB_GIT"]}

if homes := os.environ.get("CLASS_HUB_HOMES"):
    # No account can be made here: all servers run as whoever runs the tests.
    class PlainAuthenticator(c.JupyterHub.authenticator_class):
        def system_user_exists(self, user):
            return True

    class PlainSpawner(c.JupyterHub.spawner_class, SimpleLocalProcessSpawner):
        home_dir_template = str(Path(homes) / "{username}")

    c.JupyterHub.authenticator_class = PlainAuthenticator
    c.JupyterHub.spawner_class = PlainSpawner
    if os.getuid() == 0:
        c.Spawner.args = ["--allow-root"]
