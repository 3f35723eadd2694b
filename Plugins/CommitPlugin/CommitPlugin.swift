import Foundation
import PackagePlugin

/// Has the tool know the commit that it is built of.
///
/// A value in Package.swift would not do: the package manager keeps that for as long as the file's text is the same.
@main
struct CommitPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) -> [Command] {
        let package = context.package.directoryURL
        let output = context.pluginWorkDirectoryURL.appending(path: "Commit.swift")
        // It grows with every commit and checkout.
        let log = repository(of: package)?.appending(path: "logs/HEAD")
        return [
            .buildCommand(
                displayName: "Asking git for the commit",
                executable: URL(filePath: "/bin/sh"),
                arguments: [package.appending(path: "Scripts/write-commit").path(), package.path(), output.path()],
                inputFiles: [log].compactMap(\.self).filter { FileManager.default.fileExists(atPath: $0.path()) },
                outputFiles: [output]
            )
        ]
    }

    /// Where git keeps what it knows; a second working tree has a file that says where.
    private func repository(of package: URL) -> URL? {
        let path = package.appending(path: ".git")
        guard let text = try? String(contentsOf: path, encoding: .utf8) else { return path }
        let line = text.split(separator: "\n").first { $0.hasPrefix("gitdir: ") }
        return line.map { URL(filePath: String($0.dropFirst(8)), relativeTo: package).absoluteURL }
    }
}
