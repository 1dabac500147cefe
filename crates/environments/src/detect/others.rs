//! Ruby, PHP and .NET projects.

use herma_core::environment::Registry;

use super::files::has_extension;
use super::{Part, RepositoryFiles};

pub(super) fn ruby(files: &RepositoryFiles) -> Option<Part> {
    if !files.has("Gemfile") {
        return None;
    }
    let is_rspec = files.has_below("spec");
    Some(Part {
        tools: vec!["ruby".to_owned()],
        registries: vec![Registry::Rubygems],
        fetch: vec!["bundle install --path \"$HOME/gems\"".to_owned()],
        verify: vec![if is_rspec { "bundle exec rspec" } else { "bundle exec rake test" }.to_owned()],
        cache: vec![".bundle".to_owned()],
        reasons: vec!["`Gemfile` makes this a Ruby project".to_owned()],
        ..Part::default()
    })
}

pub(super) fn php(files: &RepositoryFiles) -> Option<Part> {
    files.has("composer.json").then(|| Part {
        tools: vec!["php".to_owned()],
        registries: vec![Registry::Packagist],
        fetch: vec!["composer install --no-scripts --no-interaction".to_owned()],
        verify: vec!["vendor/bin/phpunit".to_owned()],
        cache: vec!["vendor".to_owned()],
        reasons: vec!["`composer.json` makes this a PHP project".to_owned()],
        ..Part::default()
    })
}

pub(super) fn dotnet(files: &RepositoryFiles) -> Option<Part> {
    let project = files.paths().find(|path| has_extension(path, &["csproj", "sln"]))?;
    Some(Part {
        tools: vec!["dotnet".to_owned()],
        registries: vec![Registry::Nuget],
        fetch: vec!["dotnet restore".to_owned()],
        verify: vec!["dotnet test --no-restore".to_owned()],
        cache: vec!["**/bin".to_owned(), "**/obj".to_owned()],
        reasons: vec![format!("`{project}` makes this a .NET project")],
        ..Part::default()
    })
}
