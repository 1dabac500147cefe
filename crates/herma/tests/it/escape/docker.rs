//! The same in containers, with a Docker daemon of the test's own.

use super::attempts::table;
use super::bombs::go_off;
use super::nothing_gets_out;
use super::world::{User, World};
use crate::docker::daemon::Daemon;
use crate::docker::herma;
use crate::kit::HERMA;

#[test]
fn nothing_gets_out_of_a_container_and_every_bomb_ends_in_one() {
    let daemon = Daemon::start(HERMA.into());
    let socket = daemon.socket();
    let world = World::new(User::Own, |herma| {
        herma.set("DOCKER_HOST", format!("unix://{}", socket.display()));
        herma.file("own/home/settings.yaml", format!("docker_image: {}\n", daemon.image()));
    });
    nothing_gets_out(world, "docker", Some(&socket));

    let herma = herma(daemon.image(), &socket);
    for bomb in table().bombs.iter().filter(|bomb| bomb.is_for("docker")) {
        go_off(&herma, bomb, "docker");
    }
    herma.demo(&["--destination", "docker"]).assert_pass();
    let left = daemon.say(&["ps", "--all", "--quiet", "--filter", "label=herma.run"]);
    assert_eq!(left, "", "no container is left");
}
