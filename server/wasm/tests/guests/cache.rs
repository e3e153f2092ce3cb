//! Native code is kept between engines, and nothing but our own is believed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use plugin::host::Host;
use plugin::{Digest, ModuleInfo};
use wasm::Engine;

use crate::fixtures::component;

fn load(folder: &Path) -> ModuleInfo {
    let engine = Engine::new(Some(folder.to_owned())).expect("the folder can be used");
    engine
        .load(&component("key-partitioner"))
        .expect("the module is sound")
        .info()
        .clone()
}

fn only_file(folder: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_module_is_compiled_once_and_then_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("deep/modules");
    let info = load(&folder);
    let file = only_file(&folder);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(name.split('-').next().unwrap().parse::<Digest>(), Ok(info.digest));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    let written = fs::metadata(&file).unwrap().ino();
    assert_eq!(load(&folder), info);
    assert_eq!(
        fs::metadata(only_file(&folder)).unwrap().ino(),
        written,
        "a file that is read is not written"
    );
}

#[test]
fn a_damaged_file_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let info = load(place.path());
    let file = only_file(place.path());
    let sound = fs::read(&file).unwrap();
    let mut flipped = sound.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&flipped[..], &sound[..sound.len() - 1], &sound[..20], b""] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(load(place.path()), info);
        assert!(fs::read(&file).unwrap().len() >= sound.len() - 8);
        assert_ne!(fs::read(&file).unwrap(), damaged);
    }
}

#[test]
fn a_file_that_others_may_write_is_not_believed() {
    let place = tempfile::tempdir().unwrap();
    let info = load(place.path());
    let file = only_file(place.path());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    assert_eq!(load(place.path()), info);
    assert_eq!(
        fs::metadata(&file).unwrap().mode() & 0o777,
        0o600,
        "it was written anew"
    );
    let elsewhere = place.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(load(place.path()), info);
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link was replaced");
}

#[test]
fn the_folder_is_closed_to_others() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    load(place.path());
    assert_eq!(fs::metadata(place.path()).unwrap().mode() & 0o777, 0o700);
    let file = place.path().join("not a folder");
    fs::write(&file, "").unwrap();
    assert!(Engine::new(Some(file)).is_err());
}

#[test]
fn an_engine_knows_a_module_that_is_still_held() {
    let engine = Engine::new(None).unwrap();
    let first = engine.load(&component("key-partitioner")).unwrap();
    let second = engine.load(&component("key-partitioner")).unwrap();
    assert!(std::ptr::eq(first.info(), second.info()));
}
