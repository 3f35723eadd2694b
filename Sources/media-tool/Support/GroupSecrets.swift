import ArgumentParser
import DesktopSecrets
import LocalMessaging
import SharedPhone

/// Where an account of a group has its password and its tokens.
enum SecretPlace: String, ExpressibleByArgument, CaseIterable {
    /// Files of the group, of mode 0600.
    case files
    /// The keyring of the desktop.
    case desktop

    /// As an account names it.
    var name: String? { self == .files ? nil : rawValue }

    /// The places that accounts name; `mayAsk` says whether a person may be asked to unlock the keyring.
    static func others(of group: GroupContainer, mayAsk: Bool) -> [String: any SecretStore] {
        let desktop = SecretService(group: group, environment: ProcessEnvironment.variables, mayAsk: mayAsk)
        return [Self.desktop.rawValue: desktop]
    }
}

extension GroupAccounts {
    /// The accounts of a group, wherever each has its secrets.
    static func inPlaces(of group: GroupContainer, mayAsk: Bool = true) throws -> GroupAccounts {
        try GroupAccounts(
            group: group,
            secrets: SecretFiles(group: group),
            otherSecrets: SecretPlace.others(of: group, mayAsk: mayAsk)
        )
    }
}
