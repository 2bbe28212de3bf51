// SPDX-License-Identifier: GPL-2.0

//! `smc_manuals FOLDER` writes manual pages and completions for shells of all tools, into `man` and
//! `completions` of the folder.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::Shell;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("smc_manuals: say which folder to write to.");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let folder = folder.to_string_lossy();
            eprintln!("smc_manuals: {folder} cannot be written to: {error}.");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    for command in smc_cli::all() {
        clap_mangen::generate_to(command.clone(), &man)?;
        for shell in SHELLS {
            let name = command.get_name().to_owned();
            clap_complete::generate_to(shell, &mut command.clone(), name, &completions)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_gets_a_page_and_completions() {
        let folder = std::env::temp_dir().join(format!("smc_manuals.{}", std::process::id()));
        write(&folder).expect("the folder for temporary files can be written to");
        for command in smc_cli::all() {
            let name = command.get_name();
            let page = fs::read_to_string(folder.join(format!("man/{name}.1"))).expect("a page");
            assert!(page.contains(".SH SYNOPSIS"), "{page}");
            for option in command.get_opts() {
                let long = option.get_long().unwrap_or_default().replace('-', "\\-");
                assert!(page.contains(&long), "--{long} of {name} is missing");
            }
            for file in [
                format!("{name}.bash"),
                format!("{name}.fish"),
                format!("_{name}"),
            ] {
                let text = fs::read_to_string(folder.join("completions").join(&file));
                assert!(text.expect("completions").contains(name), "{file}");
            }
        }
        fs::remove_dir_all(folder).expect("it was just written");
    }
}
