import ArgumentParser
import CallCore
import LocalMessaging
import SharedPhone

/// The accounts of a group.
struct SIPAccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "The accounts of a group, for `core`: adds, lists, changes, removes.",
        discussion: """
            What is known of an account stands in the store of the group, its password and its tokens in files of mode 0600 \
            beside it, or with --secrets desktop in the keyring of the desktop (Secret Service), which asks for its own \
            password when it is locked. With --realm the password is kept as its hashes, which stand for it in that realm \
            alone. A core that runs uses what is changed at once.

            EXAMPLES
              media-tool sip account add --group /tmp/group --account sip:alice@example.org --password-file secret
              media-tool sip account list --group /tmp/group --json
              media-tool sip account set --group /tmp/group --account sip:alice@example.org --expires 600
              media-tool sip account set --group /tmp/group --account sip:alice@example.org --secrets desktop
              media-tool sip account remove --group /tmp/group --account sip:alice@example.org
            """,
        subcommands: [AddCommand.self, ListCommand.self, SetCommand.self, RemoveCommand.self]
    )

    /// What can be said of an account.
    struct Options: ParsableArguments {
        @OptionGroup var place: GroupOption
        @OptionGroup var own: AccountOptions

        @Option(
            help: ArgumentHelp(
                "The realm of the password, as the server names it: the password is kept as its hashes alone.",
                valueName: "name"
            )
        )
        var realm: String?

        @Option(parsing: .unconditional, help: ArgumentHelp("The name that others see.", valueName: "text"))
        var name: String?

        @Option(help: ArgumentHelp("How long to be registered, 60 to 86400. Default: 3600.", valueName: "s"))
        var expires: UInt32?

        @Option(
            help: """
                Where the password and the tokens are: files, of mode 0600, or desktop, its keyring. Default: where they are, else \
                files.
                """
        )
        var secrets: SecretPlace?

        func validate() throws {
            try Quantity.check("--expires", expires.map { Int($0) }, in: 60...86_400, "s")
            guard own.account != nil else { throw ValidationError("Missing '--account'. Give its address.") }
        }

        var address: String { own.account ?? "" }

        /// Changes what is said.
        func apply(to account: inout GroupAccount) throws {
            if let user = own.user { account.userName = user }
            if let name { account.displayName = name }
            if let registrar = own.registrar { account.registrar = registrar }
            if !own.proxy.isEmpty { account.proxies = own.proxy }
            if let expires { account.expires = expires }
            if own.wantsPush { account.push = own.pushOfGroup }
            if let secrets { account.secretStore = secrets.name }
            guard let password = try own.password() else {
                guard realm == nil else {
                    throw ToolFailure("--realm is about a password. Give --password-file, or leave it out.")
                }
                return
            }
            let userName = try account.userName ?? SIPOptions.uri(address, "--account").user ?? ""
            account.secret =
                realm.map { PhoneSecret(hashing: password, userName: userName, realm: $0) }
                ?? PhoneSecret(password: password)
        }
    }

    /// Adds an account.
    struct AddCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Adds an account to a group.",
            discussion: """
                EXAMPLES
                  media-tool sip account add --group /tmp/group --account sip:alice@example.org --password-file secret
                """
        )

        @OptionGroup var options: Options
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let accounts = try GroupAccounts.inPlaces(of: options.place.container())
            guard try await !accounts.withoutSecrets().contains(where: { $0.address == options.address }) else {
                throw ToolFailure("\(options.address) is an account of the group already. Change it: sip account set.")
            }
            var account = GroupAccount(options.address)
            try options.apply(to: &account)
            try await SIPAccountCommand.put(account, accounts, common)
        }
    }

    /// Changes an account.
    struct SetCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Changes an account of a group; what is not said stays.",
            discussion: """
                EXAMPLES
                  media-tool sip account set --group /tmp/group --account sip:alice@example.org --name 'Alice at home'
                """
        )

        @OptionGroup var options: Options
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let accounts = try GroupAccounts.inPlaces(of: options.place.container(isCreated: false))
            guard var account = try await accounts.account(options.address) else {
                throw SIPAccountCommand.unknown(options.address)
            }
            try options.apply(to: &account)
            try await SIPAccountCommand.put(account, accounts, common)
        }
    }

    /// Removes an account.
    struct RemoveCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Removes an account from a group; a core that runs takes its binding away.",
            discussion: """
                EXAMPLES
                  media-tool sip account remove --group /tmp/group --account sip:alice@example.org
                """
        )

        @OptionGroup var place: GroupOption

        @Option(help: ArgumentHelp("The address of the account.", valueName: "uri"))
        var account: String

        @OptionGroup var common: CommonOptions

        func run() async throws {
            let accounts = try GroupAccounts.inPlaces(of: place.container(isCreated: false))
            guard try await accounts.withoutSecrets().contains(where: { $0.address == account }) else {
                throw SIPAccountCommand.unknown(account)
            }
            try await accounts.remove(account)
            common.show(["event": "removed", "account": .string(account)], text: "\(account) is removed\n")
        }
    }

    /// Lists the accounts.
    struct ListCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the accounts of a group; no secret is shown.",
            discussion: """
                Nobody is asked to unlock a keyring: what cannot be looked into is told as unreadable.

                EXAMPLES
                  media-tool sip account list --group /tmp/group --json
                """
        )

        @OptionGroup var place: GroupOption
        @OptionGroup var common: CommonOptions

        func run() async throws {
            // Who only looks at a list is not asked for a password.
            let accounts = try GroupAccounts.inPlaces(of: place.container(isCreated: false), mayAsk: false)
            var (lines, objects): (String, [JSONValue]) = ("", [])
            for account in try await accounts.withoutSecrets() {
                var (known, words): (GroupAccount?, String)
                do {
                    known = try await accounts.account(account.address)
                    words = known?.secret == nil ? "no password" : "with a password"
                } catch let error as SecretError {
                    (known, words) = (nil, "whether with a password is not to be seen: \(error.message)")
                }
                lines += "\(account.address.printable): \(words), \(account.expires) s\n"
                objects.append(SIPAccountCommand.json(known ?? account, isReadable: known != nil))
            }
            common.show(
                ["accounts": .array(objects)],
                text: objects.isEmpty ? "There is no account.\n" : lines
            )
        }
    }

    private static func put(_ account: GroupAccount, _ accounts: GroupAccounts, _ common: CommonOptions) async throws {
        do {
            try await accounts.set(account)
        } catch let error as PhoneError {
            throw ToolFailure(error.message)
        }
        common.show(json(account), text: "\(account.address.printable) is an account of the group\n")
    }

    private static func unknown(_ address: String) -> ToolFailure {
        ToolFailure("\(address) is no account of the group. Add it: sip account add.")
    }

    private static func json(_ account: GroupAccount, isReadable: Bool = true) -> JSONValue {
        func word(_ isSet: Bool) -> JSONValue { isReadable ? isSet ? "set" : .null : "unreadable" }
        return [
            "account": .string(account.address), "user": JSONValue(account.userName),
            "name": JSONValue(account.displayName), "registrar": JSONValue(account.registrar),
            "proxies": .array(account.proxies.map { .string($0) }), "expires": .integer(Int(account.expires)),
            "password": word(account.secret != nil), "push": word(account.push != nil),
            "secrets": .string(account.secretStore ?? SecretPlace.files.rawValue),
        ]
    }
}

extension AccountOptions {
    /// How it is woken, as a group keeps it.
    var pushOfGroup: GroupAccount.Push {
        if let pushProvider { return .other(service: pushProvider, project: pushParam, token: pushPrid ?? "") }
        return .apple(
            team: pushTeam ?? "",
            bundle: pushBundle ?? "",
            callToken: pushVoipToken,
            textToken: pushRemoteToken
        )
    }
}
